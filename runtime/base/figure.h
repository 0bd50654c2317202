#ifndef CROWN_BASE_FIGURE_H
#define CROWN_BASE_FIGURE_H

/** A number that was measured or worked out, in text for people. lua/crown/check/figure.lua has the
 * same rule. */
struct figure {
    char text[40];
};

/** Three figures, or the whole number where it is larger: never an exponent, as in "3e+04".
 * @param value no larger than nanoseconds in an int64_t are seconds */
struct figure figure_about(double value);

#endif
