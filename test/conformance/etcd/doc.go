// SPDX-License-Identifier: Apache-2.0

// Command etcd is the store of the control plane that an agent joins in `make test-cluster`: etcd's own main function,
// built from its module. It has nothing of ours.
package main
