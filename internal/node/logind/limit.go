// SPDX-License-Identifier: Apache-2.0

package logind

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// dropIn is a file of ours beside logind's own (logind.conf(5)), one on a machine: several servers share its limit.
const dropIn = "/etc/systemd/logind.conf.d/99-wherry.conf"

// mark begins the first line of the file, which goes on with the data folder in quotes.
const mark = "# Written by wherry for "

// oldMark is how the file began when it did not say for which data folder it is.
const oldMark = "# Written by wherry: "

// write has a file raise the limit for the server of a data folder.
func write(file, folder string, to time.Duration) error {
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return err
	}
	seconds := int64((to + time.Second - 1) / time.Second)
	text := fmt.Sprintf("%s%q: the machine's going down waits until pods have ended.\n[Login]\nInhibitDelayMaxSec=%d\n",
		mark, folder, seconds)
	return os.WriteFile(file, []byte(text), 0o644)
}

// Forget removes what Watch has written for the server of a data folder, for a server that is removed itself. What
// another server or somebody else has written stays. logind goes by it until it reads its settings again.
func Forget(folder string) error { return forget(dropIn, folder) }

func forget(file, folder string) error {
	text, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("limit of logind: %w", err)
	}
	if !strings.HasPrefix(string(text), fmt.Sprintf("%s%q:", mark, folder)) &&
		!strings.HasPrefix(string(text), oldMark) {
		return nil
	}
	return os.Remove(file)
}
