// SPDX-License-Identifier: Apache-2.0

package server

import (
	"os"
	"path/filepath"
	"strings"
)

// restoredMark is the file in a store's folder that names the file that the store was restored from. It comes and goes
// with the store.
const restoredMark = "restored-from"

func markRestored(store, file string) error {
	return os.WriteFile(filepath.Join(store, restoredMark), []byte(filepath.Base(file)+"\n"), 0o600)
}

// restoredFrom is the name of the file that a store was restored from; "" if it was not, or that is not known.
func restoredFrom(store string) string {
	text, err := os.ReadFile(filepath.Join(store, restoredMark))
	if err != nil {
		return ""
	}
	return strings.TrimSuffix(string(text), "\n")
}
