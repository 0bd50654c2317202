--- In which schema of a database the tables are: a role's search_path says so, and candidates that look in two would lead beside
-- each other.
-- @internal crown.postgres.schema

local schema = {}

--- The SQL expression for whether a table is there with all these columns. It reads the catalogs only: everybody may, and it
-- locks nothing.
-- @string name of the table
-- @tparam table columns
-- @treturn string
function schema.has_columns(name, columns)
  return ([[(SELECT count(*) = %d FROM pg_attribute WHERE attrelid = to_regclass('%s') AND NOT attisdropped
    AND attname IN ('%s'))]]):format(#columns, name, table.concat(columns, "', '"))
end

--- The SQL expression for the schema that the search_path finds a table in.
-- @string name of the table
-- @treturn string
function schema.of(name)
  return ("(SELECT nspname::text FROM pg_class c JOIN pg_namespace n ON n.oid = relnamespace WHERE c.oid = to_regclass('%s'))")
    :format(name)
end

--- The SQL expression for another schema that has tables of these names, which those who look there would take for ours.
-- Anybody may see that they are there.
-- @tparam table names of the tables
-- @string here the expression for the schema that is ours
-- @treturn string
function schema.elsewhere(names, here)
  return ([[(SELECT min(n.nspname)::text FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
    WHERE c.relname IN ('%s') AND c.relkind IN ('r', 'p') AND c.relpersistence <> 't' AND n.nspname IS DISTINCT FROM %s)]])
    :format(table.concat(names, "', '"), here)
end

--- The columns of a SELECT for schema.misplaced: the schema that its user's search_path finds the tables in, the one where they
-- would be made, and another one that has them.
-- @tparam table names of the tables, of which the first one counts
-- @treturn string
function schema.placement(names)
  local there = schema.of(names[1])
  return ("%s AS schema, current_schema()::text AS first_schema, %s AS elsewhere"):format(there,
    schema.elsewhere(names, ("coalesce(%s, current_schema())"):format(there)))
end

--- What to do about tables in two schemas.
schema.ONE_PATH = ": set one search_path for all (ALTER ROLE … SET search_path) and drop the unused table, or give each of two "
  .. "environments its own by the option schema"

--- What is said where the search_path names no schema that is there, as after DROP SCHEMA: in Postgres' own words.
schema.NOWHERE = "no schema has been selected to look in; make the schema (CREATE SCHEMA …), or name one that is there "
  .. "(ALTER ROLE … SET search_path)"

--- Why a table is not relied on in the schema that it is in.
-- @string named the table
-- @tparam table row what schema.placement selects
-- @string[opt] wanted the option schema: tables in others are none of this one's
-- @treturn string or nil
function schema.misplaced(named, row, wanted)
  local here = row.schema or row.first_schema
  if not here then return schema.NOWHERE end
  if wanted and here ~= wanted then
    return ("%s is in the schema '%s', by this user's search_path, and not in '%s', as the option schema has it")
      :format(named, here or "", wanted)
  end
  if wanted or not row.elsewhere then return nil end
  if not row.schema then
    return ("%s is in the schema '%s', and this user's search_path leads to '%s'; both would lead%s"):format(named,
      row.elsewhere, here or "", schema.ONE_PATH)
  end
  return ("%s is in the schemas '%s' and '%s', and this user's search_path leads to the first; candidates that look in the "
    .. "other one would lead beside this one%s"):format(named, here, row.elsewhere, schema.ONE_PATH)
end

return schema
