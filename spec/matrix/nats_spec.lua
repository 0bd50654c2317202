require "matrix.play"("nats", "greeting login setup watch claim refresh release")
