#include "kernels/guesses.h"

#include <string.h>

#include "kernels/checks.h"

void guesses_begin(struct guesses *guesses) {
    guesses->count = 0;
    if (guesses->any_verified) memset(guesses->verified, 0, sizeof guesses->verified);
    guesses->any_verified = false;
}

void guesses_keep(struct guesses *guesses, const struct wrong_access *wrong, uint32_t read_site) {
    for (uint32_t i = 0; i < guesses->count; i++)
        if (guesses->sites[i] == read_site && guesses->kept[i].seen == wrong->seen) return;
    if (guesses->count == GUESSES_MAX) return;
    guesses->sites[guesses->count] = read_site;
    guesses->kept[guesses->count++] = *wrong;
}

void guesses_verify(struct guesses *guesses, uint32_t read_site) {
    if (read_site >= VERIFIED_MAX) return;
    guesses->any_verified = true;
    guesses->verified[read_site / 8] |= (unsigned char)(1 << read_site % 8);
}

static bool is_verified(const struct guesses *guesses, uint32_t site) {
    return site >= VERIFIED_MAX || guesses->verified[site / 8] >> site % 8 & 1;
}

void guesses_see(struct guesses *guesses) {
    for (uint32_t i = 0; i < guesses->count; i++)
        if (!is_verified(guesses, guesses->sites[i])) checks_see(&guesses->kept[i]);
    guesses->count = 0;
}

void guesses_verify_all(struct guesses *guesses, const struct guesses *others) {
    if (!others->any_verified) return;
    guesses->any_verified = true;
    for (unsigned i = 0; i < sizeof guesses->verified; i++) guesses->verified[i] |= others->verified[i];
}
