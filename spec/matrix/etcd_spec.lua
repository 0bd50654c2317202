require "matrix.play"("etcd", "greeting login setup watch claim refresh release")
