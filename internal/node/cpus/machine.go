// SPDX-License-Identifier: Apache-2.0

package cpus

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/wherryproject/wherry/internal/node/cpus/pin"
)

// SystemFolder is where the kernel tells of its CPUs.
const SystemFolder = "/sys/devices/system/cpu"

// ReadMachine reads which CPUs are online and where they lie. What the kernel does not say of a CPU's place (some
// virtual machines) is taken as a core of its own in the first socket.
func ReadMachine(folder string) (pin.Machine, error) {
	text, err := os.ReadFile(filepath.Join(folder, "online"))
	if err != nil {
		return nil, fmt.Errorf("which CPUs are online: %w", err)
	}
	online, err := pin.Parse(strings.TrimSpace(string(text)))
	if err != nil {
		return nil, fmt.Errorf("which CPUs are online: %s: %w", filepath.Join(folder, "online"), err)
	}
	var out pin.Machine
	for _, id := range online.List() {
		at := filepath.Join(folder, "cpu"+strconv.Itoa(id), "topology")
		out = append(out, pin.CPU{ID: id, Core: number(filepath.Join(at, "core_id"), id),
			Socket: number(filepath.Join(at, "physical_package_id"), 0)})
	}
	return out, nil
}

// number reads one from a file; otherwise where there is none, or one below 0.
func number(file string, otherwise int) int {
	text, err := os.ReadFile(file)
	if err != nil {
		return otherwise
	}
	n, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil || n < 0 {
		return otherwise
	}
	return n
}
