// SPDX-License-Identifier: Apache-2.0

// Package cluster tests debugging on a cluster that has nothing of Wherry's (DA-04 to DA-10): Kubernetes' own API
// server, scheduler, controller manager and kubelet, with containerd. run.sh builds and starts them (make
// test-cluster-debug), and runs the tests of this package, which say so where it has not.
//
// Its law: what is tested is what users call, the command line, as users with the roles that are installed.
package cluster
