require "matrix.play"("redis", "greeting login setup claim refresh release watch")
