require "matrix.play"("mysql", "greeting login setup claim refresh release")
