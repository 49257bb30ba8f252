// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"io"
	"net/url"
	"strconv"
	"time"

	"github.com/wherryproject/wherry/internal/enginesocket"
)

// answerWithin bounds how long an engine may take to say whether it has the image. Docker packs it before its first
// byte, which takes a while for large ones.
const answerWithin = 10 * time.Minute

// openDocker asks Docker's API for what docker save writes (Engine API, GET /images/get).
func openDocker(ctx context.Context, image string, o Options) (io.ReadCloser, error) {
	caller, err := strconv.Atoi(o.Getenv("SUDO_UID")) // of whoever called sudo
	if err != nil {
		caller = 0
	}
	socket, err := enginesocket.DockerPlace(caller).Find(ctx, o.Address, o.Getenv)
	if err != nil {
		return nil, err
	}
	body, err := enginesocket.Docker{Socket: socket, Within: answerWithin}.Get(ctx, "/images/get",
		url.Values{"names": {image}})
	return body, enginesocket.Advise(err, "docker image ls lists those that there are")
}
