-- What happens to a candidate and its store, on Postgres as a register.
require "stores.run" "postgres_register"
