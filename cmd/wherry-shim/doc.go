// SPDX-License-Identifier: Apache-2.0

// wherry-shim serves one pod's containers to containerd (io.containerd.wherry.v1); it is package
// github.com/wherryproject/wherry/internal/shim behind containerd's command line for shims. It is embedded into wherry.
//
// containerd does not start it itself: it starts containerd-shim-wherry-v1 (internal/shim/front), a small C program
// that starts this one, and answers alone where it can.
package main
