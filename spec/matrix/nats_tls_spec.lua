require "matrix.play"("nats_tls", "greeting handshake refresh release")
