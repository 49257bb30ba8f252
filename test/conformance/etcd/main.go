// SPDX-License-Identifier: Apache-2.0

// Command etcd is the store of the control plane that an agent joins in `make test-cluster`.
package main

import (
	"os"

	"go.etcd.io/etcd/server/v3/etcdmain"
)

func main() { etcdmain.Main(os.Args) }
