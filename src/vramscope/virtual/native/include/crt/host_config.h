/* Empty on purpose: see host_defines.h. */
