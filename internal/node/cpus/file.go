// SPDX-License-Identifier: Apache-2.0

package cpus

import (
	"fmt"

	"github.com/wherryproject/wherry/internal/node/cpus/pin"
	"github.com/wherryproject/wherry/internal/node/statefile"
)

// FileName is that of the file in a pod's folder that says what the pod has.
const FileName = "cpus.json"

// read reads what a pod's containers have, as lists of CPUs by container.
func read(file string) (pin.Held, error) {
	var lists map[string]string
	err := statefile.Read(file, &lists)
	if err != nil {
		return nil, err
	}
	out := pin.Held{}
	for container, list := range lists {
		if out[container], err = pin.Parse(list); err != nil {
			return nil, fmt.Errorf("%s: container %s: %w", file, container, err)
		}
	}
	return out, nil
}

func write(file string, h pin.Held) error {
	lists := map[string]string{}
	for container, set := range h {
		lists[container] = set.String()
	}
	return statefile.Write(file, lists)
}
