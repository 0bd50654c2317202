require "matrix.play"("majority", "greeting setup claim refresh release watch")
