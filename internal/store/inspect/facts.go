// SPDX-License-Identifier: Apache-2.0

package inspect

import "path/filepath"

// Facts are what a look at the files of a store has found.
type Facts struct {
	Dir string   `json:"dir"` // etcd's own folder
	Log Log      `json:"log"`
	DB  Database `json:"db"`
}

// Log is the write-ahead log: every change since the last snapshot, with checksums.
type Log struct {
	Files    int    `json:"files"`
	Empty    string `json:"empty,omitempty"`    // the first file without any content
	Cluster  uint64 `json:"cluster,omitempty"`  // id of the etcd cluster that wrote it
	Snapshot uint64 `json:"snapshot,omitempty"` // entry that the newest valid snapshot stands for
	Last     uint64 `json:"last,omitempty"`     // last entry
	Commit   uint64 `json:"commit,omitempty"`   // last entry that is known to have been acknowledged
	Err      string `json:"err,omitempty"`      // why it cannot be read
}

// Database is the file with all objects.
type Database struct {
	Exists   bool   `json:"exists,omitempty"`
	Size     int64  `json:"size,omitempty"`     // bytes
	Cluster  uint64 `json:"cluster,omitempty"`  // id of the only member, which is new after a restore
	Applied  uint64 `json:"applied,omitempty"`  // last entry of the log that is in it
	Revision int64  `json:"revision,omitempty"` // of the newest change
	Keys     int    `json:"keys,omitempty"`     // changes kept, of all objects
	Err      string `json:"err,omitempty"`      // what is wrong with it
	Busy     bool   `json:"busy,omitempty"`     // another process has it open: nothing is known
}

// Paths below etcd's own folder.
func logDir(dir string) string { return filepath.Join(dir, "member", "wal") }

// DatabaseFile is the file with all objects in etcd's own folder.
func DatabaseFile(dir string) string { return filepath.Join(dir, "member", "snap", "db") }
