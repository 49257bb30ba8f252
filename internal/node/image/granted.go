// SPDX-License-Identifier: Apache-2.0

package image

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"time"

	corev1 "k8s.io/api/core/v1"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/wherryproject/wherry/internal/imagename"
	"github.com/wherryproject/wherry/internal/node/pullrecord"
)

// credential is one that fits an image, and the secret that it is from; nil: the node's own.
type credential struct {
	auth *runtimeapi.AuthConfig
	from *corev1.Secret
}

// secret is the credential as records of pulls have it.
func (c credential) secret() pullrecord.Secret {
	return pullrecord.Secret{UID: string(c.from.UID), Namespace: c.from.Namespace, Name: c.from.Name,
		Hash: hashOf(c.auth)}
}

// hashOf identifies credentials without revealing them.
func hashOf(auth *runtimeapi.AuthConfig) string {
	text, err := json.Marshal([]string{auth.Username, auth.Password, auth.IdentityToken, auth.RegistryToken})
	if err != nil {
		return "" // never equal to another
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:])
}

// granted reports whether the pod of these credentials may use an image that is on the node without asking its registry
// (RS-12).
func (p *Puller) granted(ref imagename.Reference, name, id string, auths func() []credential) bool {
	if p.cfg.Records == nil {
		return true
	}
	record, begun, err := p.cfg.Records.Look(ref, id)
	if err != nil {
		p.cfg.Logger.Warn("record of an image's pull cannot be read, so the registry is asked", "image", name, "err",
			err)
	}
	facts := pullrecord.Facts{Policy: p.cfg.Verify, Image: ref, ByID: imagename.IsID(name), Record: record,
		Begun: begun, Unread: err != nil}
	verdict := pullrecord.Decide(facts, func() (all []pullrecord.Secret) {
		for _, c := range auths() {
			if c.from != nil {
				all = append(all, c.secret())
			}
		}
		return all
	})
	if verdict.By != nil {
		if err := p.cfg.Records.Learn(ref, id, pullrecord.Access{Secrets: []pullrecord.Secret{*verdict.By}},
			time.Now()); err != nil {
			p.cfg.Logger.Warn("record of an image's pull cannot be written", "image", name, "err", err)
		}
	}
	return verdict.Granted
}

// recorded pulls, and keeps on record who was let in: a note before, so that an image whose pull is cut off here and
// ended by the runtime does not pass for one that was always there.
func (p *Puller) recorded(ctx context.Context, pod *corev1.Pod, ref imagename.Reference,
	all []credential) (pulled, error) {
	auths := make([]*runtimeapi.AuthConfig, len(all))
	for i := range all {
		auths[i] = all[i].auth
	}
	if p.cfg.Records == nil {
		return p.pull(ctx, pod, ref, auths)
	}
	if err := p.cfg.Records.Begin(ref); err != nil {
		return pulled{}, &Error{Reason: ErrImagePull, Image: ref.Given, Err: err,
			Message: "image " + ref.Given + " is not pulled, as it cannot be put on record: " + err.Error()}
	}
	got, err := p.pull(ctx, pod, ref, auths)
	switch {
	case err == nil:
		access := pullrecord.Access{Everyone: true}
		if len(all) > 0 && all[got.used].from != nil {
			access = pullrecord.Access{Secrets: []pullrecord.Secret{all[got.used].secret()}}
		}
		err := p.cfg.Records.Done(ref, got.known, access, time.Now())
		if err != nil {
			p.cfg.Logger.Warn("an image's pull cannot be put on record, so it will be pulled again", "image", ref.Given,
				"err", err)
		}
	case ctx.Err() != nil:
		p.cfg.Records.Left(ref)
	default:
		if err := p.cfg.Records.Failed(ref); err != nil {
			p.cfg.Logger.Warn("note of an image's pull cannot be removed", "image", ref.Given, "err", err)
		}
	}
	return got, err
}
