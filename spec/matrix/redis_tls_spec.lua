require "matrix.play"("redis_tls", "greeting handshake refresh release")
