// SPDX-License-Identifier: Apache-2.0

// Package podcert gets the certificates that pods ask for in projected volumes (podCertificate, PL-05): it makes the
// key, asks the signer by a PodCertificateRequest, and asks anew before the certificate ends.
//
// Manager is the whole of it. A pod is registered before anything of it runs and unregistered when it is gone. Each
// certificate has a goroutine that owns what is known of it; pods without any cost nothing. The name of a request is
// chosen here, so that its answer can be waited for by a watch of that request alone; a certificate that is fresh has
// no watch.
//
// Its law: a key never leaves the node, and lives in memory and in the pod's volume only, so that an agent that begins
// anew asks for new ones. Who was refused asks no more: the signer's word stands until the pod is made again.
package podcert
