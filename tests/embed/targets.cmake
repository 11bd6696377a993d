# Fails unless all targets of Weir exist: they have the same names in its build tree and installed.
foreach(name IN ITEMS weir base os loop task runtime net event compression tls json config log http
    doctor web telemetry profile app admin testing sim http_testing)
  if(NOT TARGET weir::${name})
    message(SEND_ERROR "there is no target weir::${name}")
  endif()
endforeach()
