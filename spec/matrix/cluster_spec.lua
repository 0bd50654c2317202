require "matrix.play"("cluster", "greeting lookup setup claim refresh release watch")
