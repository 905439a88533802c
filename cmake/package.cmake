# What `cmake --install` installs, and the packages that cpack makes of it (docs/install.md): nodeworth_VERSION_ARCH.deb
# and nodeworth-VERSION-Linux-ARCH.tar.gz. Everything below the prefix; nothing reads the source tree afterwards.
include(GNUInstallDirs)
set(CMAKE_INSTALL_DEFAULT_DIRECTORY_PERMISSIONS OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE WORLD_READ
                                                WORLD_EXECUTE) # whatever the umask is
install(TARGETS nodeworth)

# Man pages and completions, written by the program itself out of its option rows.
set(nw_generated ${CMAKE_BINARY_DIR}/generated)
if(CMAKE_CROSSCOMPILING AND NOT CMAKE_CROSSCOMPILING_EMULATOR)
  message(STATUS "no man pages and completions: this machine cannot run the program that writes them")
else()
  find_program(nw_gzip gzip)
  add_custom_command(
    OUTPUT ${nw_generated}/stamp
    COMMAND ${CMAKE_COMMAND} -Dprogram=$<TARGET_FILE:nodeworth> -Dout=${nw_generated} -Dgzip=${nw_gzip} -P
            ${CMAKE_SOURCE_DIR}/cmake/generate.cmake
    DEPENDS nodeworth ${CMAKE_SOURCE_DIR}/cmake/generate.cmake VERBATIM COMMENT "man pages and completions")
  add_custom_target(nw_generated ALL DEPENDS ${nw_generated}/stamp)
  install(DIRECTORY ${nw_generated}/man/ DESTINATION ${CMAKE_INSTALL_MANDIR})
  install(FILES ${nw_generated}/nodeworth DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions)
  install(FILES ${nw_generated}/nodeworth.fish DESTINATION ${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d)
endif()

# The README's links hold: docs/ lies beside it.
install(FILES README.md README.zh-CN.md DESTINATION ${CMAKE_INSTALL_DOCDIR})
install(DIRECTORY docs DESTINATION ${CMAKE_INSTALL_DOCDIR})
install(DIRECTORY ci/launch DESTINATION ${CMAKE_INSTALL_DOCDIR}/ci) # examples for launchers
# The result schema is the public interface; the catalogue of GPUs is compiled in, and here to be read.
install(DIRECTORY results/schema DESTINATION ${CMAKE_INSTALL_DATADIR}/nodeworth)
install(FILES topo/gpus.csv DESTINATION ${CMAKE_INSTALL_DATADIR}/nodeworth)
# What depends on the prefix: where zsh looks, and what Debian wants beside the files.
install(CODE "set(nw_source \"${CMAKE_SOURCE_DIR}\")
set(nw_build \"${CMAKE_BINARY_DIR}\")
set(nw_gzip \"${nw_gzip}\")
set(nw_doc \"${CMAKE_INSTALL_DOCDIR}\")
include(\"${CMAKE_SOURCE_DIR}/cmake/package-files.cmake\")")

set(NW_PACKAGE_CONTACT "nodeworth developers <nodeworth@users.noreply.github.com>" CACHE STRING
    "who answers for a package that cpack makes: NAME <ADDRESS>")
set(CPACK_GENERATOR DEB TGZ)
set(CPACK_PACKAGE_NAME nodeworth)
set(CPACK_PACKAGE_VENDOR "nodeworth developers")
set(CPACK_PACKAGE_CONTACT "${NW_PACKAGE_CONTACT}")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "measure rented GPU nodes, hold them against the quote, price a second one")
set(CPACK_RESOURCE_FILE_LICENSE ${CMAKE_SOURCE_DIR}/LICENSE)
set(CPACK_STRIP_FILES TRUE)
set(CPACK_INSTALL_DEFAULT_DIRECTORY_PERMISSIONS ${CMAKE_INSTALL_DEFAULT_DIRECTORY_PERMISSIONS})
set(CPACK_PROJECT_CONFIG_FILE ${CMAKE_SOURCE_DIR}/cmake/package-version.cmake) # the version of what was built
set(CPACK_NW_BUILD ${CMAKE_BINARY_DIR})
set(CPACK_NW_MACHINE ${CMAKE_SYSTEM_PROCESSOR})
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION utils)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS TRUE)
# Found by PATH, opened at run time or loaded as plugins, which dpkg-shlibdeps cannot see.
set(nw_mpi_package openmpi-bin)
if(nw_mpi MATCHES "^MPICH")
  set(nw_mpi_package mpich)
endif()
set(CPACK_DEBIAN_PACKAGE_RECOMMENDS "${nw_mpi_package}, libhwloc-plugins, ibverbs-providers, librdmacm1")
set(CPACK_DEBIAN_PACKAGE_SUGGESTS "fio")
set(CPACK_DEBIAN_PACKAGE_DESCRIPTION "Measures collectives, pairs and devices between the ranks of an mpirun, holds
the result against a vendor's quote and against physics, predicts memory and
step time of a training job from the measured curves, and says whether a second
node is worth its price. Works with and without GPUs, NCCL and RDMA.")
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION TRUE)
include(CPack)
