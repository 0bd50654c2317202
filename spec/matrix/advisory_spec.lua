require "matrix.play"("advisory", "greeting login setup watch claim refresh release")
