// SPDX-License-Identifier: Apache-2.0

package datadir

import "path/filepath"

// Default is the data folder of this machine's server.
const Default = "/var/lib/wherry"

// Variable is the environment variable that names another one.
const Variable = "WHERRY_DATA_DIR"

// Start is the command that starts a server with this data folder.
func Start(dir string) string {
	if dir == Default {
		return "sudo wherry server"
	}
	return "sudo wherry server --data-dir " + dir
}

// Kubeconfig is where a server with this data folder writes its administrator's kubeconfig.
func Kubeconfig(dir string) string { return filepath.Join(dir, "kubeconfig") }

// Socket is where a server with this data folder serves the host API.
func Socket(dir string) string { return filepath.Join(dir, "wherry.sock") }

// Lock is the file that a server at work on this data folder has locked (package filelock).
func Lock(dir string) string { return filepath.Join(dir, "lock") }
