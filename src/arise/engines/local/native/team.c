#include "kernel.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>

#define SPINS 2000 /* a few microseconds, then the processor goes to whoever needs it */

struct Team {
    int members;
    Job job;
    void *what;
    pthread_t *helpers;
    pthread_mutex_t lock;
    pthread_cond_t work;
    long round;
    bool ended;
    atomic_int arrived, working;
    atomic_long meeting;
};

typedef struct {
    Team *team;
    int member;
} Helper;

static void pause_briefly(int *spins) {
    if (++*spins < SPINS)
#if defined(__x86_64__)
        __builtin_ia32_pause();
#else
        (void)0;
#endif
    else
        sched_yield();
}

static void *help(void *given) {
    Helper self = *(Helper *)given;
    Team *team = self.team;
    free(given);
    long seen = 0;
    while (true) {
        pthread_mutex_lock(&team->lock);
        while (team->round == seen && !team->ended) pthread_cond_wait(&team->work, &team->lock);
        bool ended = team->ended;
        seen = team->round;
        pthread_mutex_unlock(&team->lock);
        if (ended) return NULL;
        team->job(team->what, self.member, team->members);
        atomic_fetch_sub(&team->working, 1);
    }
}

Team *start_team(int members) {
    Team *team = calloc(1, sizeof *team);
    if (team == NULL) return NULL;
    pthread_mutex_init(&team->lock, NULL);
    pthread_cond_init(&team->work, NULL);
    team->members = 1;
    team->helpers = calloc((size_t)members, sizeof *team->helpers);
    for (int member = 1; member < members && team->helpers; member++) {
        Helper *self = malloc(sizeof *self);
        if (self == NULL) break;
        *self = (Helper){team, member};
        if (pthread_create(&team->helpers[member], NULL, help, self) != 0) {
            free(self);
            break;
        }
        team->members++;
    }
    return team;
}

int members_of(const Team *team) { return team->members; }

/* Let every member do its part of a job, the caller included; return when all have. */
void run_team(Team *team, Job job, void *what) {
    team->job = job;
    team->what = what;
    atomic_store(&team->arrived, 0);
    atomic_store(&team->working, team->members - 1);
    if (team->members > 1) {
        pthread_mutex_lock(&team->lock);
        team->round++;
        pthread_cond_broadcast(&team->work);
        pthread_mutex_unlock(&team->lock);
    }
    job(what, 0, team->members);
    int spins = 0;
    while (atomic_load(&team->working) > 0) pause_briefly(&spins);
}

/* Wait inside a job until every member is here. */
void meet(Team *team) {
    if (team->members == 1) return;
    long meeting = atomic_load(&team->meeting);
    if (atomic_fetch_add(&team->arrived, 1) == team->members - 1) {
        atomic_store(&team->arrived, 0);
        atomic_fetch_add(&team->meeting, 1);
        return;
    }
    int spins = 0;
    while (atomic_load(&team->meeting) == meeting) pause_briefly(&spins);
}

void end_team(Team *team) {
    pthread_mutex_lock(&team->lock);
    team->ended = true;
    pthread_cond_broadcast(&team->work);
    pthread_mutex_unlock(&team->lock);
    for (int member = 1; member < team->members; member++) pthread_join(team->helpers[member], NULL);
    free(team->helpers);
    free(team);
}
