require "matrix.play"("postgres_tls", "greeting handshake refresh release")
