// SPDX-License-Identifier: Apache-2.0

// Package rootca keeps a config map "kube-root-ca.crt" with the server's CA certificate in every namespace, which pods
// mount to verify the API server.
//
// Controller is a loop over the names of namespaces. The law: whatever anyone does to the map, it is put back.
package rootca
