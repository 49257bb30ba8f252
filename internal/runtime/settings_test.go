// SPDX-License-Identifier: Apache-2.0

package runtime

import (
	"slices"
	"testing"
)

// TestCDIFolders proves PL-34: containerd's CRI looks for the devices that plug-ins name where vendors describe them.
// (containerd, internal/cri/config/config_unix.go)
func TestCDIFolders(t *testing.T) {
	got, _ := settingsFor(Config{}, dirs{}, facts{})["io.containerd.cri.v1.runtime"]["cdi_spec_dirs"].([]string)
	if !slices.Equal(got, []string{"/etc/cdi", "/var/run/cdi"}) {
		t.Errorf("it looks in %q", got)
	}
}
