std = "luajit"
max_line_length = 120
files["spec"] = { std = "luajit+busted" }
files["lua/crown/testing"] = { std = "luajit+busted" }
exclude_files = { "build*" }
