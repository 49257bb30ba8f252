// SPDX-License-Identifier: Apache-2.0

// Package kubeletconfig reads a kubelet's configuration file (KubeletConfiguration, kubelet.config.k8s.io/v1beta1) as
// flags of Wherry's, so that the file of a node can be handed over (PL-36).
//
// Read is the whole of it. What Wherry has becomes the value of a flag; what Wherry does in any case is taken in
// silence; all else that a file sets is named, with the reason. Its law: no field is passed over. A field is in exactly
// one of the package's tables, which a test holds against the type, and a field that the type does not have is an
// error.
package kubeletconfig
