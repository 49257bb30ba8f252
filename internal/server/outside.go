// SPDX-License-Identifier: Apache-2.0

package server

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/wherryproject/wherry/internal/runtime/network"
)

// outsideFile is where a data folder remembers the bridge of an external runtime's network that the node has put rules
// on.
func outsideFile(dataDir string) string { return filepath.Join(dataDir, "external-bridge") }

// rememberOutside remembers the bridge of an external runtime's network that rules are about to be put on, "" for none,
// and takes away those on the one before.
func rememberOutside(dataDir, bridge string) error {
	text, err := os.ReadFile(outsideFile(dataDir))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	before := strings.TrimSpace(string(text))
	if before == bridge {
		return nil
	}
	if before != "" {
		if err := network.ForgetOutside(before); err != nil {
			return fmt.Errorf("rules on bridge %s, which %s names: %w", before, outsideFile(dataDir), err)
		}
	}
	if bridge == "" {
		return os.Remove(outsideFile(dataDir))
	}
	return writeFile(outsideFile(dataDir), []byte(bridge+"\n"), 0o644)
}
