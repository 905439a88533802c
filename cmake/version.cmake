# nw_version: a library of one constant, "0.1.0-12-g1234567-dirty"; "0.1.0" outside git.
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

set(text ${version})
if(git)
  # safe.directory: root builds a checkout of somebody else. Not a repository that merely lies around an unpacked archive.
  set(git ${git} -c safe.directory=${source} -C ${source})
  execute_process(COMMAND ${git} rev-parse --show-cdup OUTPUT_VARIABLE up RESULT_VARIABLE rc ERROR_QUIET)
  string(STRIP "${up}" up)
  if(rc EQUAL 0 AND up STREQUAL "")
    execute_process(COMMAND ${git} describe --tags --always --dirty OUTPUT_VARIABLE described RESULT_VARIABLE rc
                    ERROR_QUIET)
    string(STRIP "${described}" described)
    if(rc EQUAL 0 AND described MATCHES "^[0-9a-f]+(-dirty)?$") # no tag yet
      set(text ${version}-g${described})
    elseif(rc EQUAL 0)
      string(REGEX REPLACE "^v" "" text ${described})
    endif()
  endif()
endif()
set(code "extern const char nw_version[];\nconst char nw_version[] = \"${text}\";\n")
set(before "")
if(EXISTS ${out})
  file(READ ${out} before)
endif()
if(NOT before STREQUAL code)
  file(WRITE ${out} "${code}")
endif()
