// SPDX-License-Identifier: Apache-2.0

// Package refs keeps the ConfigMaps, Secrets and ClusterTrustBundles that the node's pods refer to at hand, and gets
// their service account tokens; package podcert gets their certificates.
//
// Sources is the whole of it. A pod is registered before anything of it runs and unregistered when it is gone; each
// object that some registered pod names has one watch, of that object alone, since the rules for nodes allow no more.
// The bundles, which a pod selects by labels, have one watch together while some pod shows any.
// Whoever asks for an object waits until it is known to exist or known to be absent; from then on the answer is local.
// When an object changes, a callback is called for each pod that names it.
//
// Its law: what was known stays known. While the API server is away, the last known state is returned (SC-20); the
// watches come back by themselves. An older state never replaces a newer one.
package refs
