// SPDX-License-Identifier: Apache-2.0

// Package conformance is where Kubernetes' own conformance suite is built, from Go modules alone, and run against
// bin/wherry (docs/conformance.md). It is a module of its own: nobody who builds wherry needs any of this.
//
// suite.go names what the suite is made of, so that go.mod has it at the version of the k8s.io modules of the main
// module. run.sh builds, starts a server of its own and runs; images.sh makes stand-ins for the images that specs run.
// known.txt lists the specs that are known to fail, with reasons.
package conformance
