// SPDX-License-Identifier: Apache-2.0

// Command pack compresses a file, as small as zstd makes it, for programs that are carried in bin/wherry:
// `go run ./tools/pack -o FILE.zst FILE`.
package main
