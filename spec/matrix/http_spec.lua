require "matrix.play"("http", "greeting claim refresh release")
