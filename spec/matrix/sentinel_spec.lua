require "matrix.play"("sentinel", "greeting lookup setup claim refresh release watch")
