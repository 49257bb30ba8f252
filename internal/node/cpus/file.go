// SPDX-License-Identifier: Apache-2.0

package cpus

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"

	"github.com/wherryproject/wherry/internal/node/cpus/pin"
)

// fileName is that of the file in its pod's folder.
const fileName = "cpus.json"

// read reads what a pod's containers have, as lists of CPUs by container.
func read(file string) (pin.Held, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	var lists map[string]string
	if err := json.Unmarshal(text, &lists); err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	out := pin.Held{}
	for container, list := range lists {
		if out[container], err = pin.Parse(list); err != nil {
			return nil, fmt.Errorf("%s: container %s: %w", file, container, err)
		}
	}
	return out, nil
}

// write replaces the file in one step.
func write(file string, h pin.Held) error {
	lists := map[string]string{}
	for container, set := range h {
		lists[container] = set.String()
	}
	text, err := json.Marshal(lists)
	if err != nil {
		return err
	}
	fresh := filepath.Join(filepath.Dir(file), "."+fileName)
	if err := os.WriteFile(fresh, text, 0o600); err != nil {
		return err
	}
	return os.Rename(fresh, file)
}
