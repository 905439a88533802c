# Included by the install script (cmake/package.cmake sets nw_source, nw_build, nw_gzip, nw_doc): what depends on the
# prefix. Below /usr of a Debian: zsh's folder for packages, and copyright and changelog as its policy wants them.
set(debian FALSE)
if(CMAKE_INSTALL_PREFIX STREQUAL "/usr" AND EXISTS /etc/debian_version)
  set(debian TRUE)
endif()
if(EXISTS ${nw_build}/generated/_nodeworth)
  set(zsh site-functions)
  if(debian)
    set(zsh vendor-completions)
  endif()
  file(INSTALL ${nw_build}/generated/_nodeworth DESTINATION "${CMAKE_INSTALL_PREFIX}/share/zsh/${zsh}")
endif()
if(NOT debian)
  file(INSTALL ${nw_source}/LICENSE DESTINATION "${CMAKE_INSTALL_PREFIX}/${nw_doc}")
  return()
endif()

include(${nw_source}/cmake/package-version.cmake)
string(TIMESTAMP nw_year "%Y" UTC)
if(nw_date)
  string(SUBSTRING "${nw_date}" 0 4 nw_year)
endif()
file(WRITE ${nw_build}/debian/copyright "Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/
Upstream-Name: nodeworth

Files: *
Copyright: ${nw_year} the nodeworth developers
License: Apache-2.0

License: Apache-2.0
 Licensed under the Apache License, Version 2.0 (the \"License\"); you may not use
 these files except in compliance with the License. Unless required by
 applicable law or agreed to in writing, software distributed under the License
 is distributed on an \"AS IS\" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY
 KIND, either express or implied.
 .
 On Debian systems the whole text is in /usr/share/common-licenses/Apache-2.0.
")
if(nw_date)
  execute_process(COMMAND date -R -u -d "${nw_date}" OUTPUT_VARIABLE when OUTPUT_STRIP_TRAILING_WHITESPACE)
else()
  execute_process(COMMAND date -R -u OUTPUT_VARIABLE when OUTPUT_STRIP_TRAILING_WHITESPACE)
endif()
file(READ ${nw_build}/CPackConfig.cmake config)
string(REGEX MATCH "CPACK_PACKAGE_CONTACT \"([^\"]*)\"" config "${config}")
file(WRITE ${nw_build}/debian/changelog.Debian "nodeworth (${nw_debian_version}-1) unstable; urgency=medium

  * Built from ${nw_text}.

 -- ${CMAKE_MATCH_1}  ${when}
")
execute_process(COMMAND ${nw_gzip} -9nf ${nw_build}/debian/changelog.Debian COMMAND_ERROR_IS_FATAL ANY)
file(INSTALL ${nw_build}/debian/copyright ${nw_build}/debian/changelog.Debian.gz
     DESTINATION "${CMAKE_INSTALL_PREFIX}/${nw_doc}")
