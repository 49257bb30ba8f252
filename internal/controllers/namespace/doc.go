// SPDX-License-Identifier: Apache-2.0

// Package namespace empties namespaces that are being deleted and then releases them.
//
// Controller is a loop over the names of terminating namespaces. It asks the API server each time what a namespace can
// contain (discovery), so kinds that are added later are emptied too. Pods go first, with their grace, and what they
// may still need (service accounts, secrets, config maps) after the last of them. The law: the finalizer "kubernetes"
// is removed only after every kind has been seen empty; whatever keeps a namespace is reported in its conditions.
package namespace
