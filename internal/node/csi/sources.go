// SPDX-License-Identifier: Apache-2.0

package csi

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"google.golang.org/grpc/status"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/wherryproject/wherry/internal/node/csi/terms"
	"github.com/wherryproject/wherry/internal/oneline"
)

// secrets reads a secret that a driver is handed; nil for none.
func (m *Manager) secrets(ctx context.Context, ref *corev1.SecretReference) (map[string]string, error) {
	if ref == nil {
		return nil, nil
	}
	s, err := m.cfg.Client.CoreV1().Secrets(ref.Namespace).Get(ctx, ref.Name, metav1.GetOptions{})
	if err != nil {
		return nil, fmt.Errorf("secret %s/%s for the driver: %w", ref.Namespace, ref.Name, err)
	}
	out := make(map[string]string, len(s.Data))
	for key, value := range s.Data {
		out[key] = string(value)
	}
	return out, nil
}

// tokens are those of the pod's service account that the driver wants, as JSON by audience; "" for none.
func (m *Manager) tokens(ctx context.Context, v *terms.Volume, pod *corev1.Pod) (string, error) {
	if len(v.Tokens) == 0 {
		return "", nil
	}
	type token struct {
		Token   string    `json:"token"`
		Expires time.Time `json:"expirationTimestamp"`
	}
	all := map[string]token{}
	for _, want := range v.Tokens {
		text, expires, err := m.cfg.Token(ctx, pod, &corev1.ServiceAccountTokenProjection{Audience: want.Audience,
			ExpirationSeconds: want.ExpirationSeconds})
		if err != nil {
			return "", fmt.Errorf("token for the driver: %w", err)
		}
		all[want.Audience] = token{text, expires.UTC()}
	}
	text, err := json.Marshal(all)
	return string(text), err
}

// driverError is what a driver has answered.
type driverError struct {
	text string
	err  error
}

func (e *driverError) Error() string { return e.text }

// Unwrap gives the answer itself.
func (e *driverError) Unwrap() error { return e.err }

// driverFault words a driver's error for a user.
func driverFault(driver, what string, err error) error {
	if err == nil {
		return nil
	}
	s := status.Convert(err)
	return &driverError{fmt.Sprintf("CSI driver %s: %s: rpc error: code = %s desc = %s", driver, what, s.Code(),
		oneline.Of(s.Message())), err}
}
