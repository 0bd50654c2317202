require "matrix.play"("etcd_tls", "greeting handshake refresh release")
