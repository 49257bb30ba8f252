// SPDX-License-Identifier: Apache-2.0

package firstthread

import "runtime"

// init runs on the first thread, where the main function's goroutine stays if it is locked now, and only then.
func init() { runtime.LockOSThread() }
