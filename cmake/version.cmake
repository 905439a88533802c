# nw_version: a library of two constants: nw_version, "0.1.0-12-g1234567-dirty", and nw_version_date, the day of that
# commit, "2026-11-30". Outside git they are what `git archive` wrote into archive.txt; else "0.1.0" and "".
#
# Included, it defines the target; as a script (cmake -P, before every build) it writes version.c, and only when the
# text has changed: so a commit recompiles one file and relinks.
if(NOT CMAKE_SCRIPT_MODE_FILE)
  find_package(Git QUIET)
  add_custom_target(nw_version_file
    COMMAND ${CMAKE_COMMAND} -Dgit=${GIT_EXECUTABLE} -Dsource=${CMAKE_SOURCE_DIR} -Dversion=${PROJECT_VERSION}
            -Dout=${CMAKE_BINARY_DIR}/version.c -P ${CMAKE_CURRENT_LIST_FILE}
    BYPRODUCTS ${CMAKE_BINARY_DIR}/version.c VERBATIM)
  add_library(nw_version STATIC ${CMAKE_BINARY_DIR}/version.c)
  add_dependencies(nw_version nw_version_file)
  return()
endif()

# "v0.1.0-12-g1234567" of a tagged history, "1234567" of one without tags; "" of none.
function(set_text described commit)
  if(described MATCHES "^[0-9a-f]+(-dirty)?$") # no tag yet
    set(text ${version}-g${described} PARENT_SCOPE)
  elseif(described)
    string(REGEX REPLACE "^v" "" text ${described})
    set(text ${text} PARENT_SCOPE)
  elseif(commit)
    set(text ${version}-g${commit} PARENT_SCOPE)
  endif()
endfunction()

set(text ${version})
set(date "")
set(rc 1)
if(git)
  # safe.directory: root builds a checkout of somebody else. Not a repository that merely lies around an unpacked archive.
  set(git ${git} -c safe.directory=${source} -C ${source})
  execute_process(COMMAND ${git} rev-parse --show-cdup OUTPUT_VARIABLE up RESULT_VARIABLE rc ERROR_QUIET)
  string(STRIP "${up}" up)
  if(NOT up STREQUAL "")
    set(rc 1)
  endif()
endif()
if(rc EQUAL 0)
  execute_process(COMMAND ${git} describe --tags --always --dirty OUTPUT_VARIABLE described ERROR_QUIET)
  execute_process(COMMAND ${git} log -1 --format=%cs OUTPUT_VARIABLE date ERROR_QUIET)
  string(STRIP "${described}" described)
  string(STRIP "${date}" date)
  set_text("${described}" "")
else()
  foreach(line describe commit date)
    file(STRINGS ${CMAKE_CURRENT_LIST_DIR}/archive.txt value REGEX "^${line} ")
    string(REGEX REPLACE "^${line} *" "" value "${value}")
    if(value MATCHES "[$]Format") # nobody's archive: a copy of the files
      set(value "")
    endif()
    set(${line} "${value}")
  endforeach()
  set_text("${describe}" "${commit}")
endif()
set(code "extern const char nw_version[], nw_version_date[];
const char nw_version[] = \"${text}\", nw_version_date[] = \"${date}\";\n")
set(before "")
if(EXISTS ${out})
  file(READ ${out} before)
endif()
if(NOT before STREQUAL code)
  file(WRITE ${out} "${code}")
endif()
