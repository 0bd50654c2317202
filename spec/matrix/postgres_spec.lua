require "matrix.play"("postgres", "greeting login setup watch claim refresh release")
