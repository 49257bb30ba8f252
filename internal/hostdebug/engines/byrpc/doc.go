// SPDX-License-Identifier: Apache-2.0

// Package byrpc asks the engines that speak gRPC: containerd by its client, and every other runtime by the CRI. It is
// apart from package engines for what its libraries take to start.
//
// Its law is that of package engines: it only asks.
package byrpc
