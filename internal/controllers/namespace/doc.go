// SPDX-License-Identifier: Apache-2.0

// Package namespace empties namespaces that are being deleted and then lets them go.
//
// Controller is a loop over the names of terminating namespaces. What a namespace can hold is asked of the API server
// each time (discovery), so kinds that come later are emptied too. Pods go first, with their grace, and what they may
// still need (service accounts, secrets, config maps) after the last of them. The law: the finalizer "kubernetes"
// is removed only after every kind has been seen empty; whatever keeps a namespace is told in its conditions.
package namespace
