// SPDX-License-Identifier: Apache-2.0

// Package clustering is `wherry cluster`: what makes pods of any Kubernetes cluster debuggable (DA-05). [New] returns
// the command. Below it: manifest and chart write what is installed, image writes the program as an image, install
// applies the manifest and waits, status says where agents run, uninstall takes everything away.
//
// Its law: a cluster is changed by install and uninstall alone. Both find out first whether they may do all of it, and
// otherwise do nothing. What is reported of a cluster is decided by pure functions from objects ([look] gathers them).
package clustering
