std = "luajit"
max_line_length = 130
files["spec"] = { std = "luajit+busted", max_line_length = 140 }
files["bench"] = { max_line_length = 140 }
files["tools"] = { max_line_length = 140 }
files["lua/crown/testing"] = { std = "luajit+busted" }
exclude_files = { "build*" }
