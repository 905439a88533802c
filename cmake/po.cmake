# cmake -DINPUT=po/zh_CN.po -DOUTPUT=zh_CN.inc -P po.cmake: a gettext catalogue as rows of a C table, WORDS("english", "chinese").
# The strings of a .po file are C strings already. The catalogue is compiled in: the program speaks Chinese on a server that has
# neither the locale nor an installed catalogue.
cmake_minimum_required(VERSION 3.25)
file(READ ${INPUT} text)
string(REGEX REPLACE "(^|\n)#[^\n]*" "\\1" text "${text}")
string(REPLACE ";" "\\073" text "${text}") # CMake would take it for the end of a list's item
string(REGEX REPLACE "(^|\n)msgid " "\\1)\nWORDS(" text "${text}")
string(REGEX REPLACE "\nmsgstr " "\n, " text "${text}")
string(REGEX REPLACE "^[ \t\n]*\\)" "" text "${text}")
file(WRITE ${OUTPUT} "${text})\n")
