// SPDX-License-Identifier: Apache-2.0

// Package hangfs is a file system that stops answering, as a network file system does whose server is gone: for tests
// of what must not wait for one. It has a folder "dir" and a file "file", and speaks as much of the FUSE protocol as
// that takes.
package hangfs
